/* A guard and an interceptor without effect, for the benchmark of the bridges. */

export class AllowAllGuard {
  canActivate() {
    return true;
  }
}

export class PassThroughInterceptor {
  intercept(_context, next) {
    return next.handle();
  }
}
