"""The metrics that are named outside of their cards: those shown, kept in order and compared when nobody says which."""

from typing import Final

# Those whose cards say ``headline``, for matrices as a whole. Their order is that of the first slots of
# ``metric_values`` in the database, each with an index of its own: it cannot change without a migration.
HEADLINE: Final = ("accuracy", "balanced_accuracy", "g_mean", "h_mean", "macro_f1", "mcc", "cohen_kappa")
# What models are ranked by.
RANKED: Final = "h_mean"
# What runs are compared on, the one to look at first in front.
COMPARED: Final = ("h_mean", "balanced_accuracy", "accuracy", "macro_f1", "mcc")
# And two runs of up to so many classes.
EACH_RECALL: Final = "recall@*"
MOST_CLASSES_COMPARED: Final = 10
# What is projected to other prevalences.
PROJECTED: Final = ("accuracy", "balanced_accuracy", "h_mean", "macro_f1", "mcc", "cohen_kappa")
# What is drawn over the shares of one class, few enough lines to be told apart; and of several runs.
SWEPT: Final = ("balanced_accuracy", "h_mean", "accuracy", "mcc", "macro_f1")
ACCURACY: Final = "accuracy"
# What accuracy is where all classes are equally frequent.
BALANCED: Final = "balanced_accuracy"
# What slices are judged by: of several classes, and of two, where it is about the positive one.
SLICED: Final = ("recall@*", "h_mean")
SLICED_OF_TWO: Final = ("recall", "precision", "h_mean")
# What texts show first, as far as a report has it: of several classes, and of two, where it is about the positive one.
SHOWN: Final = (
    *("h_mean", "g_mean", "balanced_accuracy", "roc_auc_ovr_macro", "au_imcp"),
    *("accuracy", "macro_f1", "mcc", "cohen_kappa"),
)
SHOWN_OF_TWO: Final = (
    *("h_mean", "balanced_accuracy", "recall", "specificity", "roc_auc", "au_imcp"),
    *("accuracy", "precision", "f1", "mcc", "average_precision"),
)
# What they show of each class.
RECALL: Final = "recall"
SPECIFICITY: Final = "specificity"
PRECISION: Final = "precision"
F1: Final = "f1"
# The samples that a class has, and their part of all.
SUPPORT: Final = "support"
SHARE: Final = "prevalence"
LOSSES_SHOWN: Final = ("log_loss", "brier_score", "expected_calibration_error")
