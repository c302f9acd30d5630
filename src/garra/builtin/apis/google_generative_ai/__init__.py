"""Gemini, by Google's own protocol: at the Gemini API, and at Vertex AI."""
