"""The page `/emergency/`: gives emergency orders from a browser, without JavaScript and cookies."""
