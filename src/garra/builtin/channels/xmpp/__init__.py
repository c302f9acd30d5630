"""XMPP as a channel: direct chats and rooms, over one stream."""
