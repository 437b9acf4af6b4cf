"""Dependencies as a graph: what is drawn, what a failure reaches, where retries multiply."""
