"""Citations by the short names that cards use, and the verbal scales of the literature.

Verbal scales are conventions, not statistics: each names its author.
"""

from pathlib import Path

from app.kernel.metrics.card import VerbalScale

# By their short names, which the lines of the file begin with.
REFERENCES: dict[str, str] = dict(
    line.split(" ", 1) for line in Path(__file__).with_name("references.txt").read_text(encoding="utf-8").splitlines()
)


LANDIS_KOCH = VerbalScale(
    "landis_koch",
    ((0.0, "poor"), (0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"), (None, "almost perfect")),
    "landis1977",
)
FLEISS = VerbalScale("fleiss", ((0.4, "poor"), (0.75, "intermediate to good"), (None, "excellent")), "fleiss2003")
ALTMAN = VerbalScale(
    "altman", ((0.2, "poor"), (0.4, "fair"), (0.6, "moderate"), (0.8, "good"), (None, "very good")), "altman1990"
)
CICCHETTI = VerbalScale(
    "cicchetti", ((0.4, "poor"), (0.59, "fair"), (0.74, "good"), (None, "excellent")), "cicchetti1994"
)
KAPPA_SCALES = (LANDIS_KOCH, FLEISS, ALTMAN, CICCHETTI)
CRAMER = VerbalScale(
    "cramer",
    (
        (0.1, "negligible"),
        (0.2, "weak"),
        (0.4, "moderate"),
        (0.6, "relatively strong"),
        (0.8, "strong"),
        (None, "very strong"),
    ),
    "rea1992",
)
MATTHEWS = VerbalScale(
    "matthews",
    ((0.3, "negligible"), (0.5, "weak"), (0.7, "moderate"), (0.9, "strong"), (None, "very strong")),
    "chicco2020",
)
LAMBDA = VerbalScale(
    "lambda",
    ((0.2, "very weak"), (0.4, "weak"), (0.6, "moderate"), (0.8, "strong"), (1.0, "very strong"), (None, "perfect")),
    "rea1992",
)
KRIPPENDORFF = VerbalScale("krippendorff", ((0.667, "low"), (0.8, "tentative"), (None, "high")), "krippendorff2004")
PEARSON_C = VerbalScale(
    "pearson_c", ((0.1, "not appreciable"), (0.2, "weak"), (0.3, "medium"), (None, "strong")), "rea1992"
)
POSITIVE_LIKELIHOOD_RATIO = VerbalScale(
    "likelihood_ratio_positive", ((1.0, "negligible"), (5.0, "poor"), (10.0, "fair"), (None, "good")), "jaeschke1994"
)
NEGATIVE_LIKELIHOOD_RATIO = VerbalScale(
    "likelihood_ratio_negative", ((0.1, "good"), (0.2, "fair"), (0.5, "poor"), (None, "negligible")), "jaeschke1994"
)
SINGLE_POINT_AUC = VerbalScale(
    "single_point_auc",
    ((0.6, "poor"), (0.7, "fair"), (0.8, "good"), (0.9, "very good"), (None, "excellent")),
    "haghighi2018",
)
YULE = VerbalScale(
    "yule_q", ((0.25, "negligible"), (0.5, "weak"), (0.75, "moderate"), (None, "strong")), "haghighi2018"
)
DISCRIMINANT_POWER = VerbalScale(
    "discriminant_power",
    ((1.0, "poor"), (2.0, "limited"), (3.0, "fair"), (None, "good")),
    "sokolova2006",
)
