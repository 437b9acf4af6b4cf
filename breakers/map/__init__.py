"""The dependency map, the fallback matrix and the amplification of retries."""
