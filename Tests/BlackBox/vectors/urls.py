"""Where the vectors take place."""

HOST = "auth.vectors.example"
ORIGIN = f"https://{HOST}"
