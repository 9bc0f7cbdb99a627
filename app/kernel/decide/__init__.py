"""Decision rules: thresholds for two classes, class weights for more."""
