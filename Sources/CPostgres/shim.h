// PostgreSQL's libpq (Debian libpq-dev) as a Swift module.
#ifndef TIMELINE_GATEWAY_CPOSTGRES_SHIM_H
#define TIMELINE_GATEWAY_CPOSTGRES_SHIM_H

#include <libpq-fe.h>

// The fields of a result's error that are read; macros of libpq with characters as values.
static inline const char *gateway_pq_sqlstate(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}
static inline const char *gateway_pq_severity(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
}
static inline const char *gateway_pq_message(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}

#endif
