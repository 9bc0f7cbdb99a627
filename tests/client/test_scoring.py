"""Metrics of the service as scorers of scikit-learn."""

import pickle

import numpy as np
import prevail
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

X, Y = load_breast_cancer(return_X_y=True)


def test_scores_are_those_of_scikit_learn(pv: prevail.Client) -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression())
    names = {
        "balanced_accuracy": "balanced_accuracy",
        "log_loss": "neg_log_loss",
        "roc_auc": "roc_auc",
        "macro_f1": "f1_macro",
    }
    ours = {name: prevail.scorer(name, client=pv) for name in names}
    found = cross_validate(model, X, Y, cv=3, scoring=ours)
    expected = cross_validate(model, X, Y, cv=3, scoring=[*names.values()])
    for name, theirs in names.items():
        np.testing.assert_allclose(found[f"test_{name}"], expected[f"test_{theirs}"], rtol=1e-12)


def test_scores_are_those_of_the_class_that_is_said_to_be_positive(pv: prevail.Client) -> None:
    model = make_pipeline(StandardScaler(), LinearSVC()).fit(X, Y)
    scores = model.decision_function(X)
    for said in ({"positive": 0}, {"pos_label": np.int64(0)}, {"positive": "bad", "labels": {0: "bad", 1: "good"}}):
        found = pv.evaluate_model(model, X, Y, **said)
        assert float(found["roc_auc"]) == pytest.approx(roc_auc_score(Y == 0, -scores), rel=1e-12)
        assert float(found["recall"]) == recall_score(Y, model.predict(X), pos_label=0)
    assert float(pv.evaluate_model(model, X, Y, positive=1)["roc_auc"]) == pytest.approx(roc_auc_score(Y, scores))


def test_a_search_takes_the_best_and_works_by_address(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREVAIL_URL", base_url)
    made = prevail.scorer("min(recall@*)", greater_is_better=True)
    # As another process gets it.
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own bytes
    assert repr(again) == "scorer('min(recall@*)')"
    scaled = StandardScaler().fit_transform(X)
    search = GridSearchCV(LogisticRegression(), {"C": [1e-6, 1.0]}, cv=2, scoring=again).fit(scaled, Y)
    assert search.best_params_ == {"C": 1.0}


def test_what_has_no_value_is_no_score(pv: prevail.Client) -> None:
    constant = DummyClassifier(strategy="constant", constant=1).fit(X, Y)
    with pytest.raises(prevail.UndefinedValue, match="never predicted"):
        prevail.scorer("precision@0", client=pv)(constant, X, Y)
    with pytest.raises(prevail.InvalidInput, match="say greater_is_better"):
        prevail.scorer("min(recall@*)", client=pv)(constant, X, Y)
    # Neither more nor less of it is better.
    with pytest.raises(prevail.InvalidInput, match="say greater_is_better"):
        prevail.scorer("imbalance_ratio", client=pv)(constant, X, Y)
