import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { finalize, type Observable } from 'rxjs';
import { toolCallOf } from 'toolwright/nestjs';
import { Measurements } from './measurements.js';

/** Measures every route and every tool call; tools are named by their tool name. */
@Injectable()
export class MeasuringInterceptor implements NestInterceptor {
  constructor(private readonly measurements: Measurements) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const tool = toolCallOf(context)?.tool.name;
    const name =
      tool === undefined ? `route ${context.getClass().name}.${context.getHandler().name}` : `tool ${tool}`;
    const since = performance.now();
    return next.handle().pipe(finalize(() => this.measurements.add(name, performance.now() - since)));
  }
}
