/* class-transformer and class-validator, called directly. */
import 'reflect-metadata';
import { plainToInstance } from 'class-transformer';
import { validate } from 'class-validator';
import { AddDto, CreateOrderDto, SearchDto } from '../.build/classes/dtos.js';
import { bodyOf } from '../workloads.mjs';

const classes = { add: AddDto, search: SearchDto, create_order: CreateOrderDto };

/** Creates and validates an instance, and calls the method. */
export function validatorCall({ tool }) {
  const target = classes[tool];
  const body = bodyOf(tool);
  const run = async (input) => body(input);
  return {
    name: 'plainToInstance + `validate` + call',
    encode: (input) => input,
    call: async (input) => {
      const instance = plainToInstance(target, input);
      const errors = await validate(instance);
      return errors.length > 0 ? { errors } : { value: await run(instance) };
    },
    read: ({ value }) => (value === undefined ? undefined : String(value)),
  };
}
