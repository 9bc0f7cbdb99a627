"""What the service is operated with: keys and projects, requests that are repeated or answered later, webhooks."""
