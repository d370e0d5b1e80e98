/**
 * What `context.ask` throws where the answer is not there yet: it ends the method, so that what it holds is
 * given back by its `finally`s. A method that catches it is suspended all the same.
 */
export class CallSuspended extends Error {
  constructor(tool: string) {
    super(`The call of '${tool}' is suspended until its question is answered; let this error pass.`);
  }
}
