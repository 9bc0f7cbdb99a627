"""How often other samples would say otherwise: matrices, pairs, groups and samples drawn again."""
