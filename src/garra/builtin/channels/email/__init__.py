"""E-mail as a channel: a mailbox read by IMAP, answers sent by SMTP."""
