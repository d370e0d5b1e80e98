/* What stands around a call in the benchmark of the bridges, and does nothing else. */

/** A guard that lets every call pass. */
export class LetsPass {
  canActivate() {
    return true;
  }
}

/** An interceptor that hands the call on. */
export class PassesOn {
  intercept(_context, next) {
    return next.handle();
  }
}
