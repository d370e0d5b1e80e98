import { Controller, Get } from '@nestjs/common';
import { OnlyFor } from '../auth/only-for.js';
import { Measurements } from './measurements.js';

/** Shows clerks the number and duration of requests and calls. */
@Controller('measurements')
export class MeasurementsController {
  constructor(private readonly measurements: Measurements) {}

  @Get()
  @OnlyFor('clerk')
  all() {
    return this.measurements.all();
  }
}
