/*
 * The replies of all scripted models: replies with calls of `add`, then the answer. It records the time of each
 * request, from which the cost of each turn is computed.
 */

/** The text of the last reply. */
export const ANSWER = 'Done.';

/** A conversation of `turns` replies with `width` calls each. */
export class Script {
  /** The times of the requests, from `performance.now()`. */
  marks;
  #turns;
  #requests = 0;
  #sum = '';
  #hasLastResult = false;

  constructor(turns, width = 1) {
    this.#turns = Array.from({ length: turns }, (_, turn) => callsOf(turn, width));
    this.#sum = String(sumOf(turns - 1, width - 1));
    this.marks = new Float64Array(turns + 1);
  }

  get length() {
    return this.#turns.length;
  }

  /** Returns the calls of the next reply; the last reply has none. `history` is the request of the framework. */
  next(history) {
    const turn = this.#requests;
    this.#requests += 1;
    this.marks[turn] = performance.now();
    if (turn < this.#turns.length) return this.#turns[turn];
    // The sum is in no arguments, so it proves that the tool has run and its result was sent to the model.
    this.#hasLastResult = JSON.stringify(history.slice(-20)).includes(this.#sum);
    return [];
  }

  /** Returns what is wrong with the conversation; `undefined` if it is correct. */
  faultOf(answer) {
    if (this.#requests !== this.#turns.length + 1) return `there were ${this.#requests} requests`;
    if (!this.#hasLastResult) return 'the last request does not contain the result of the last call';
    return answer === ANSWER ? undefined : `the answer is ${JSON.stringify(answer)}`;
  }
}

/* Each call is different, because loop guards stop repeated calls. */
function callsOf(turn, width) {
  return Array.from({ length: width }, (_, index) => ({
    id: `call_${turn}_${index}`,
    name: 'add',
    arguments: JSON.stringify({ a: 71_000_000, b: turn * 100 + index + 1 }),
  }));
}

function sumOf(turn, index) {
  return 71_000_000 + turn * 100 + index + 1;
}
