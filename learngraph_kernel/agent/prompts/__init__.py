"""Texts that models are told, one file a layer."""
