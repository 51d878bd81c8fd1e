#pragma once
#include <libpq-fe.h>

/* Macros of postgres_ext.h that Swift does not import. */
static const int POSTERN_DIAG_SQLSTATE = PG_DIAG_SQLSTATE;
static const int POSTERN_DIAG_MESSAGE_PRIMARY = PG_DIAG_MESSAGE_PRIMARY;
static const int POSTERN_DIAG_MESSAGE_HINT = PG_DIAG_MESSAGE_HINT;
static const int POSTERN_DIAG_CONSTRAINT_NAME = PG_DIAG_CONSTRAINT_NAME;
static const int POSTERN_DIAG_STATEMENT_POSITION = PG_DIAG_STATEMENT_POSITION;
