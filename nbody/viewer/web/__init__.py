"""The window as a page for any browser: pictures go over a WebSocket, keys and mouse come back."""
