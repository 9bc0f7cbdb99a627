"""Values over slices as Fairlearn has them: of each group, their difference, ratio, smallest and largest."""

from functools import partial
from typing import Any

import pytest
from sklearn import metrics as sklearn_metrics

from app.domain.options import Options
from app.services.evaluate.reports import evaluate
from tests.services.slicing import attributes_of, clinic

CLINIC = clinic()


@pytest.mark.slow
def test_groups_differences_and_ratios_are_those_of_metric_frames() -> None:
    from fairlearn.metrics import (
        MetricFrame,
        demographic_parity_difference,
        demographic_parity_ratio,
        equal_opportunity_difference,
        equal_opportunity_ratio,
        equalized_odds_difference,
        equalized_odds_ratio,
        selection_rate,
    )

    samples, known = CLINIC.samples, attributes_of(CLINIC)
    assert samples is not None
    kept = known["site"] != "F"
    truth, predicted, site = samples.truth[kept], samples.predicted[kept], known["site"][kept]
    functions = {
        "recall@D": sklearn_metrics.recall_score,
        "precision@D": sklearn_metrics.precision_score,
        "accuracy": sklearn_metrics.accuracy_score,
        "mcc": sklearn_metrics.matthews_corrcoef,
        "predicted_prevalence@D": selection_rate,
        "fpr@D": lambda y, p: 1 - sklearn_metrics.recall_score(y, p, pos_label=0),
        "fn_per_fp@D": lambda y, p: ((y == 1) & (p == 0)).sum() / ((y == 0) & (p == 1)).sum(),
    }
    frame = MetricFrame(metrics=functions, y_true=truth, y_pred=predicted, sensitive_features=site)

    def values(*texts: str) -> list[Any]:
        return [*evaluate(CLINIC, Options(metrics=texts)).requested.values()]

    for name in functions:
        groups = values(*(f'{name}[site="{one}"]' for one in ("A", "B", "C")))
        assert groups == pytest.approx(frame.by_group[name].tolist(), rel=1e-12)
        ends = values(*(f"{function}({name}, by=site)" for function in ("min", "max", "range")))
        of_frame = (frame.group_min(), frame.group_max(), frame.difference(method="between_groups"))
        assert ends == pytest.approx([one[name] for one in of_frame], rel=1e-12)
        assert values(f"mean({name}, by=site)") == pytest.approx([frame.by_group[name].mean()], rel=1e-12)
        if name != "mcc":
            ratio = frame.ratio(method="between_groups")[name]
            assert values(f"ratio({name}, by=site)") == pytest.approx([ratio], rel=1e-12)
    criteria = {
        "range(predicted_prevalence@D, by=site)": demographic_parity_difference,
        "ratio(predicted_prevalence@D, by=site)": demographic_parity_ratio,
        "range(recall@D, by=site)": equal_opportunity_difference,
        "demographic_parity_difference(by=site)": demographic_parity_difference,
        "demographic_parity_ratio(by=site)": demographic_parity_ratio,
        "equal_opportunity_difference(by=site)": equal_opportunity_difference,
        "equal_opportunity_ratio(by=site)": equal_opportunity_ratio,
        "equalized_odds_difference(by=site)": equalized_odds_difference,
        "equalized_odds_ratio(by=site)": equalized_odds_ratio,
        "equalized_odds_difference(by=site, agg=mean)": partial(equalized_odds_difference, agg="mean"),
        "equalized_odds_ratio(by=site, agg=mean)": partial(equalized_odds_ratio, agg="mean"),
        "treatment_equality_ratio(by=site)": lambda *_, **__: frame.ratio(method="between_groups")["fn_per_fp@D"],
    }
    for text, function in criteria.items():
        assert values(text) == pytest.approx([function(truth, predicted, sensitive_features=site)], rel=1e-12)
