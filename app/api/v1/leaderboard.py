"""The route of the leaderboard."""

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from app.api.deps import UseContext, routes
from app.api.presentation import AS_USUAL, LEADERBOARD, UseAsked, view_of, written_as
from app.api.problems import InvalidQuery
from app.api.v1.requests.fields import EXPRESSION_FORMAT, SOUGHT, ProportionIntervalName
from app.domain.errors import InvalidExpression, OutOfReach
from app.domain.evaluation import DatasetRef
from app.domain.named_metrics import RANKED
from app.domain.report import ProportionInterval
from app.services.rank.ranking import LeaderboardQuery
