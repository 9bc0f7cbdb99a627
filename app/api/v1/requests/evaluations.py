"""Requests about evaluations."""

from typing import Any, Literal

from pydantic import Field

from app.api.bodies.parsing import Wire
from app.api.v1.requests.asked import Declared
from app.api.v1.requests.fields import (
    ChangedTags,
    DatasetField,
    ModelField,
    PastMoment,
    RunField,
    Tags,
)
from app.api.v1.requests.inputs import AnyInput
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Tally
from app.domain.options import DRAWS, FEWEST_DRAWS, Costs, Options, Sampling
from app.services.evaluate.evaluations import Merge, NewEvaluation


class CostsField(Declared, of=Costs):
    """Costs of decisions."""


class OptionsField(Declared, of=Options):
    """Options of a report, beyond the values that every report has."""

    costs: CostsField | None = None
    draws: int = Field(
        DRAWS,
        ge=FEWEST_DRAWS,
        le=100_000,
        description="With `all`: simulated matrices; of samples at most 1000 resamples.",
    )

    def to_domain(self, **others: Any) -> Options:
        """The domain's form."""
        options: Options = super().to_domain(sampling=self.filled(Sampling), **others)
        return options


class NamedRequest(Wire):
    """An input, what is asked of it, and whose it is."""

    input: Any
    model: ModelField | None = Field(None, description="Required when the evaluation is saved.")
    dataset: DatasetField | None = Field(None, description="Required when the evaluation is saved.")
    tags: Tags = Field(default_factory=dict, description="Free pairs of text to find it by; a key has no colon.")
    options: OptionsField = Field(default_factory=OptionsField)
    created_at: PastMoment | None = Field(
        None,
        description="When it was made, for those who bring evaluations from elsewhere: past, with an offset, "
        "kept to the millisecond in UTC. Needs the scope `admin`. Now when left out.",
    )


class EvaluationRequest(NamedRequest):
    """An evaluation to be computed, and kept unless `store=false`."""

    input: AnyInput

    def to_domain(self, tally: Tally | None = None, *, part: bool = False) -> NewEvaluation:
        """The request as the services know it; with a ``tally`` every entry of predictions stands for many samples, and
        a ``part`` has some of the samples only.

        Raises:
            InvalidInput: the input has the right form but cannot be evaluated.
        """
        source: MatrixInput = self.input.to_domain("/input", tally=tally, part=part)
        return self.filled(NewEvaluation, source=source)


class BatchRequest(Wire):
    """Many evaluations; each succeeds or fails on its own."""

    evaluations: list[Any] = Field(
        min_length=1,
        max_length=1000,
        description="Each as in POST /v1/evaluations.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/EvaluationRequest"}},
    )


class MergeRequest(Wire):
    """Evaluations whose data is to be evaluated as one. They stay as they are."""

    evaluations: list[RunField] = Field(
        min_length=2,
        max_length=100,
        description="Ids, or references to the latest of each; of one kind, all different.",
    )
    mode: Literal["pooled", "folds"] = Field(
        "pooled", description="`pooled`: all samples or counts together. `folds`: each is a fold of the kind `folds`."
    )
    model: ModelField | None = Field(None, description="That of all of them when left out.")
    dataset: DatasetField | None = Field(None, description="That of all of them when left out.")
    tags: Tags = Field(default_factory=dict)
    options: OptionsField = Field(default_factory=OptionsField)

    def to_domain(self) -> Merge:
        """Convert the request for the services."""
        return self.filled(Merge, as_folds=self.mode == "folds")


class TagsRequest(Wire):
    """Changes of tags as a merge patch (RFC 7396): `null` removes a tag, tags that are not named stay."""

    tags: ChangedTags
