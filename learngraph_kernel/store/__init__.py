"""Store: tables and migrations, unit of work with audit and outbox, the event log, the artifact store."""
