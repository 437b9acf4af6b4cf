"""The OpenAPI document: how it is finished, prepared and served."""
