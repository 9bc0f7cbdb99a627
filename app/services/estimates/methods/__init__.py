"""How limits are made: of a matrix or of samples, as the run is or at other class shares."""
