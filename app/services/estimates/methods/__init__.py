"""Methods of limits: of a matrix or of samples, as observed or at another class prevalence."""
