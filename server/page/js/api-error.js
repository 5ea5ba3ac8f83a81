/**
 * Errors of the API, with the server's message and hint.
 */

/** An error of the API, or of the network if `status` is 0. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} message
   * @param {string} [hint]
   * @param {number} [retryAfter] Seconds.
   */
  constructor(status, code, message, hint, retryAfter) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint ?? '';
    this.retryAfter = retryAfter ?? 0;
  }
}

/**
 * Returns the error as text, with its hint.
 *
 * @param {unknown} error
 */
export function errorText(error) {
  if (error instanceof ApiError && error.hint) return `${error.message}. ${error.hint}`;
  return error instanceof Error ? error.message : String(error);
}

/** @param {unknown} error */
export function isAbort(error) {
  return error instanceof Error && error.name === 'AbortError';
}

/**
 * Returns the error that a response describes.
 *
 * @param {Response} response
 */
export async function toError(response) {
  const retryAfter = Number(response.headers.get('retry-after') ?? 0) || 0;
  try {
    const { error } = await response.json();
    return new ApiError(response.status, error.code, error.message, error.hint, retryAfter);
  } catch {
    return new ApiError(response.status, 'http', `The server answered with status ${response.status}`);
  }
}
