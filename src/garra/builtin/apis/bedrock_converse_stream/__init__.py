"""Amazon Bedrock's converse stream."""
