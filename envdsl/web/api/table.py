"""The whole API: who may do what, where, and what goes in and out. Routes, authorisation and OpenAPI come from here."""

from __future__ import annotations

from envdsl.policy.access import Action
from envdsl.web.api import about, asking, audit, layers, requests, sessions, tokens, uploads
from envdsl.web.api.endpoint import Concerns, Endpoint

_NOTHING, _CALLER, _STORE = Concerns.NOTHING, Concerns.CALLER, Concerns.STORE
_SESSION, _REQUEST = Concerns.SESSION, Concerns.REQUEST

# fmt: off
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/openapi.json", None, _NOTHING, about.openapi, "This document.", "Document"),
    Endpoint("GET", "/me", None, _CALLER, about.me, "Who you are to this service.", "Caller"),
    Endpoint("GET", "/health", Action.SEE_STORE, _STORE, about.health,
             "Database, store, sandbox, workers: what works.", "Health", slow=True),

    # python_env
    Endpoint("GET", "/sessions/{session}/status", Action.STATUS, _SESSION, asking.status,
             "What a session has: packages, import names, open requests.", "StatusAnswer"),
    Endpoint("POST", "/sessions/{session}/requests", Action.REQUEST, _SESSION, asking.ask,
             "Ask for packages.", "RequestAnswer", body="Ask", query=("wait",), status=202),
    Endpoint("GET", "/sessions/{session}/requests/{request}", Action.STATUS, _REQUEST, asking.wait,
             "How a request stands; with `wait`, once it has ended or the time is over.", "RequestAnswer",
             query=("wait",)),
    Endpoint("POST", "/sessions/{session}/requests/{request}/cancel", Action.CANCEL, _REQUEST, asking.cancel,
             "Take a request back.", "RequestAnswer"),
    Endpoint("POST", "/sessions/{session}/uploads", Action.REQUEST, _SESSION, uploads.for_session,
             "Send a wheel, to be named in a request.", "Received", query=("filename",), status=201, upload=True),

    # sessions
    Endpoint("GET", "/sessions", Action.SEE_SESSION, _CALLER, sessions.listing, "The sessions that you may see.",
             "Sessions", query=("limit", "after")),
    Endpoint("GET", "/sessions/{session}", Action.SEE_SESSION, _SESSION, sessions.show, "What a session is bound to.",
             "Session"),
    Endpoint("GET", "/sessions/{session}/history", Action.SEE_SESSION, _SESSION, sessions.history,
             "What a session had when.", "Bindings"),
    Endpoint("POST", "/sessions/{session}/rebase", Action.REBIND, _SESSION, sessions.rebase,
             "Bind a session to its layers as they are locked now, or say what that would change.", "Change",
             body="Rebase", slow=True),
    Endpoint("POST", "/sessions/{session}/undo", Action.REBIND, _SESSION, sessions.undo,
             "Bind a session to what it had before.", "Change", body="Undo", slow=True),
    Endpoint("POST", "/sessions/{session}/seal", Action.REBIND, _SESSION, sessions.seal,
             "Base, layers, wheels and decisions of a session, signed off.", "Seal", slow=True),

    # requests
    Endpoint("GET", "/requests", Action.SEE_SESSION, _CALLER, requests.listing, "The requests that you may see.",
             "Requests", query=("session", "status", "limit", "before-request")),
    Endpoint("GET", "/requests/{request}", Action.SEE_SESSION, _REQUEST, requests.show, "One request.", "Request"),
    Endpoint("GET", "/requests/{request}/card", Action.SEE_SESSION, _REQUEST, requests.card,
             "What a person needs to decide.", "Card", media=("text/markdown",)),
    Endpoint("POST", "/requests/{request}/decision", Action.DECIDE, _REQUEST, requests.decide,
             "Approve, isolate or deny what was shown under this digest.", "Request", body="Decide"),
    Endpoint("POST", "/requests/{request}/promotion", Action.PROMOTE, _REQUEST, requests.promote,
             "Write the layer file and the lock of what proved useful.", "Promoted", body="Promote", slow=True),

    # wheels, layers, store
    Endpoint("POST", "/uploads", Action.UPLOAD, _STORE, uploads.check, "Check a wheel, and keep it for a request.",
             "Received", query=("filename",), status=201, upload=True),
    Endpoint("GET", "/layers", Action.SEE_STORE, _STORE, layers.listing, "The layers of the store.", "Layers",
             slow=True),
    Endpoint("GET", "/layers/{layer}", Action.SEE_STORE, _STORE, layers.show, "What a layer holds.", "LayerContents",
             slow=True),
    Endpoint("GET", "/layers/{layer}/users", Action.SEE_STORE, _STORE, layers.users,
             "The sessions that are bound to a layer, and every root that keeps it.", "LayerUsers", slow=True),
    Endpoint("GET", "/gc", Action.COLLECT, _STORE, layers.preview, "What a collection would delete.", "Collected",
             query=("free", "older-than", "keep-last"), slow=True),
    Endpoint("POST", "/gc", Action.COLLECT, _STORE, layers.collect, "Delete what nothing needs.", "Collected",
             body="Collect", slow=True),
    Endpoint("GET", "/catalog", Action.SEE_STORE, _STORE, layers.catalog, "What is allowed, denied and limited.",
             "Catalog", query=("session",)),
    Endpoint("GET", "/catalog/{package}", Action.SEE_STORE, _STORE, layers.explain, "What the catalog says of a name.",
             "Explanation", query=("version", "session")),

    # audit, tokens
    Endpoint("GET", "/audit", Action.SEE_AUDIT, _STORE, audit.listing, "Events, the newest first.", "AuditEvents",
             query=("limit", "before", "session")),
    Endpoint("GET", "/audit/verification", Action.SEE_AUDIT, _STORE, audit.verify,
             "Whether the chain of events holds.", "AuditVerified", query=("first", "last"), slow=True),
    Endpoint("GET", "/tokens", Action.MANAGE_TOKENS, _STORE, tokens.listing, "All tokens, without their secrets.",
             "Tokens"),
    Endpoint("POST", "/tokens", Action.MANAGE_TOKENS, _STORE, tokens.create, "Make a token.", "MadeToken",
             body="NewToken", status=201),
    Endpoint("DELETE", "/tokens/{token}", Action.MANAGE_TOKENS, _STORE, tokens.revoke, "Revoke a token.", "Token"),
)
# fmt: on
