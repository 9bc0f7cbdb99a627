"""Could any confusion matrix have produced what was reported?"""
