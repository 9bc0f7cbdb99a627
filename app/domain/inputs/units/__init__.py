"""Inputs that are judged by other units than samples of classes: labels, clusters, queries, regions and answers."""
