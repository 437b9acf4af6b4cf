"""Services as they are in real life: processes of their own, with a client in them."""
