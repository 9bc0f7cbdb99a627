"""The parts of a report, one for each thing that is known of an input, and what they find."""
