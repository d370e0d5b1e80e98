import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import { ExternalExceptionFilterContext } from '@nestjs/core/exceptions/external-exception-filter-context.js';
import { lastValue } from './returned-value.js';

/** What an exception filter threw instead of answering, and which filter. */
export class FilterFailure {
  readonly filter: object;
  readonly thrown: unknown;

  constructor(filter: object, thrown: unknown) {
    this.filter = filter;
    this.thrown = thrown;
  }
}

/** Nest's exception filters, except that one which throws is known by name. They answer with promises. */
export class WatchedFilters extends ExternalExceptionFilterContext {
  override getFilterInstance(
    ...given: Parameters<ExternalExceptionFilterContext['getFilterInstance']>
  ): ExceptionFilter | null {
    const filter = super.getFilterInstance(...given);
    return filter && watched(filter);
  }
}

/** Its prototype is the filter, so that Nest finds what `@Catch` recorded. */
function watched(filter: ExceptionFilter): ExceptionFilter {
  const answer = async (exception: unknown, host: ArgumentsHost): Promise<unknown> => {
    try {
      return await lastValue(await filter.catch(exception, host));
    } catch (thrown) {
      throw new FilterFailure(filter, thrown);
    }
  };
  return Object.create(filter, { catch: { value: answer } });
}
