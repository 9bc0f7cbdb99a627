"""Consistency of reported scores with whole counts: search for confusion matrices that produce them."""
