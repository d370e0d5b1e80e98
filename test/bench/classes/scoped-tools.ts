import { Lifecycle, scoped } from 'tsyringe';
import { Tool, Toolset } from '#toolwright';

/** Created for each call. */
@scoped(Lifecycle.ContainerScoped)
export class CallStatistics {
  calls = 0;
}

/** W1 in a toolset that is created for each call with its dependency. */
@Toolset({ scope: 'scoped' })
export class ScopedTools {
  constructor(private readonly statistics: CallStatistics) {}

  @Tool('Add two numbers in an instance of the call')
  async addScoped(a: number, b: number) {
    this.statistics.calls += 1;
    return a + b;
  }
}
