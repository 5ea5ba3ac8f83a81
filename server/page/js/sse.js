/**
 * Reads server-sent events from a stream of bytes.
 *
 * @typedef {{id: string|null, event: string, data: string}} Message
 */

/**
 * Parses the text of an event stream piece by piece, wherever the pieces are cut.
 */
export class SseParser {
  constructor() {
    this.rest = '';
    /** @type {string[]} */
    this.data = [];
    /** @type {string|null} */
    this.id = null;
    this.event = 'message';
  }

  /**
   * Adds a piece and returns the messages that it completes.
   *
   * @param {string} piece
   * @returns {Message[]}
   */
  push(piece) {
    /** @type {Message[]} */
    const messages = [];
    const text = this.rest + piece;
    let start = 0;
    for (;;) {
      const end = lineEnd(text, start);
      if (end < 0) break;
      this.line(text.slice(start, end), messages);
      start = text[end] === '\r' && text[end + 1] === '\n' ? end + 2 : end + 1;
    }
    this.rest = text.slice(start);
    return messages;
  }

  /**
   * @param {string} line
   * @param {Message[]} messages
   */
  line(line, messages) {
    if (line === '') {
      if (this.data.length > 0) {
        messages.push({ id: this.id, event: this.event, data: this.data.join('\n') });
      }
      this.data = [];
      this.id = null;
      this.event = 'message';
      return;
    }
    if (line.startsWith(':')) return;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') this.data.push(value);
    else if (field === 'id') this.id = value;
    else if (field === 'event') this.event = value;
  }
}

/**
 * Returns the index of the next complete line's end, or -1. A `\r` at the end of the text is not
 * complete, because a `\n` may follow it.
 *
 * @param {string} text
 * @param {number} start
 */
function lineEnd(text, start) {
  for (let i = start; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === 10) return i;
    if (code === 13) return i + 1 < text.length ? i : -1;
  }
  return -1;
}
