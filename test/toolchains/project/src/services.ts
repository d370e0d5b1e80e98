import { injectable } from 'tsyringe';

@injectable()
export class Clock {
  now(): Date {
    return new Date(0);
  }
}

@injectable()
export class Ledger {
  constructor(readonly clock: Clock) {}

  stamp(): string {
    return this.clock.now().toISOString();
  }
}
