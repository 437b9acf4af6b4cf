"""The pages of SLOs."""
