/**
 * The embed session of a page: its token, the renewal of it, and the requests made with it.
 *
 * The token arrives in the URL's fragment, is removed from the address at once, and is stored only in this object. Its
 * claims are used only for timing; the server checks the token on every request.
 */

const RENEW_AT = 0.8; // of a token's life
const RETRY_MS = 15_000; // a renewal that could not reach the server
const TIMEOUT_MS = 60_000;

/**
 * Failed request to a data route.
 *
 * `kind` selects the page's reaction: expired, denied, gone (its data version), not-found, not-covered, busy,
 * unreachable, failed.
 */
export class Failure extends Error {
  /**
   * @param {string} kind
   * @param {{detail?: string, problem?: object | null, retryAfter?: number | null}} [about] `retryAfter` in seconds
   */
  constructor(kind, { detail = "", problem = null, retryAfter = null } = {}) {
    super(detail || kind);
    this.kind = kind;
    this.problem = problem;
    this.retryAfter = retryAfter;
  }
}

const KINDS = {
  401: (code) => (code === "token-expired" ? "expired" : "denied"),
  403: () => "denied",
  404: () => "not-found",
  409: (code) => (code === "not-covered" ? "not-covered" : "failed"),
  410: () => "gone",
  429: () => "busy",
  503: (code) => (code === "superset-not-provisioned" ? "failed" : "unreachable"),
};

async function failureOf(response) {
  const type = response.headers.get("content-type") ?? "";
  const problem = type.includes("json") ? await response.json() : null;
  const kind = KINDS[response.status]?.(problem?.code) ?? (response.status >= 502 ? "unreachable" : "failed");
  const wait = Number(response.headers.get("retry-after"));
  const retryAfter = Number.isFinite(wait) && wait > 0 ? wait : null;
  return new Failure(kind, {
    detail: problem?.detail ?? `${response.status} ${response.statusText}`,
    problem,
    retryAfter,
  });
}

/**
 * Read the claims of a token without verifying it.
 * @param {string} token
 * @returns {{report: string, iat: number, exp: number, sxp: number} | null} null: not a token
 */
export function claimsOf(token) {
  try {
    const body = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(body), (character) => character.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null; // the server reports the fault on the first request
  }
}

/**
 * Take the token out of the address: after this, neither it nor the history contains `#t=<jwt>`.
 * @returns {string | null}
 */
export function tokenFromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("t");
  if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
  return token;
}

/** The session of one page. */
export class Session {
  #token;
  #timer = 0;
  #clockSkew = 0;
  #proven = false; // a token was accepted once; a token never accepted is not renewed
  #onFailure;

  /**
   * @param {string | null} token
   * @param {(failure: Failure) => void} onFailure called when the token can no longer be renewed
   */
  constructor(token, onFailure) {
    this.#onFailure = onFailure;
    this.accept(token);
    document.addEventListener("visibilitychange", () => this.#schedule());
  }

  /** The claims of the token in use; null without one. */
  get claims() {
    return this.#token === null ? null : claimsOf(this.#token);
  }

  /** The token itself, only for a form that downloads. */
  get token() {
    return this.#token;
  }

  /** @param {string | null} token replaces the current one */
  accept(token) {
    this.#token = token;
    this.#schedule();
  }

  /**
   * Get JSON.
   *
   * @param {string} path
   * @param {Record<string, string | number | null | undefined>} [parameters] empty ones are omitted.
   * @param {{signal?: AbortSignal}} [options]
   * @returns {Promise<any>} the response
   * @throws {Failure}
   */
  get(path, parameters = {}, { signal } = {}) {
    const given = Object.entries(parameters).filter(
      ([, value]) => value !== null && value !== undefined && value !== "",
    );
    const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    return this.#request(query ? `${path}?${query}` : path, { signal });
  }

  /**
   * @param {string} path
   * @param {object} [body]
   * @returns {Promise<any>} the response
   * @throws {Failure}
   */
  post(path, body) {
    const json =
      body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    return this.#request(path, { method: "POST", ...json });
  }

  async #request(path, { headers = {}, signal, ...options } = {}) {
    if (this.#token === null) throw new Failure("expired", { detail: "the address carries no token" });
    const limit = AbortSignal.timeout(TIMEOUT_MS);
    const request = {
      ...options,
      headers: { ...headers, accept: "application/json", authorization: `Bearer ${this.#token}` },
      credentials: "omit",
      redirect: "error",
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    };
    try {
      const response = await fetch(path, request);
      if (!response.ok) throw await failureOf(response);
      this.#accepted(response);
      return await response.json();
    } catch (error) {
      if (error instanceof Failure || signal?.aborted) throw error;
      throw new Failure("unreachable", { detail: String(error.message ?? error) });
    }
  }

  // A token's times follow the server's clock; the browser's clock may be minutes off.
  #accepted(response) {
    const at = Date.parse(response.headers.get("date") ?? "");
    const skew = Number.isNaN(at) ? 0 : at - Date.now();
    if (this.#proven && Math.abs(skew - this.#clockSkew) < 2_000) return;
    this.#proven = true;
    this.#clockSkew = skew;
    this.#schedule();
  }

  #schedule(atLeast = 0) {
    clearTimeout(this.#timer);
    const claims = this.claims;
    if (claims === null || !this.#proven || document.visibilityState !== "visible") return;
    const { iat, exp, sxp } = claims;
    if (exp >= sxp) return; // the last token of its session
    const due = (iat + (exp - iat) * RENEW_AT) * 1000 - (Date.now() + this.#clockSkew);
    this.#timer = setTimeout(() => this.#renew(), Math.max(due, atLeast));
  }

  async #renew() {
    const renewed = this.#token;
    try {
      const { token } = await this.post("/embed/token");
      if (this.#token === renewed) this.accept(token);
    } catch (failure) {
      if (this.#token !== renewed) return; // the host was faster
      if (["unreachable", "busy"].includes(failure.kind)) {
        this.#schedule((failure.retryAfter ?? 0) * 1000 || RETRY_MS);
      } else {
        this.#onFailure(failure);
      }
    }
  }
}
