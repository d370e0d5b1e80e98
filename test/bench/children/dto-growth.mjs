/* Measures a DTO call of toolwright and of class-validator, with other DTO classes loaded; µs by workload. */
import 'reflect-metadata';
import { IsInt, IsString, MaxLength, Min } from 'class-validator';
import { timeCalls } from '../measure.mjs';
import { validatorCall } from '../peers/class-validator.mjs';
import { ownDtoCall } from '../peers/toolwright.mjs';
import { verify, workloads } from '../workloads.mjs';

declareOthers(Number(process.argv[2]));
const quick = process.argv[3] === 'quick';
const options = quick ? { rounds: 3, roundMs: 5, warmUpMs: 50 } : { rounds: 9, roundMs: 20, warmUpMs: 300 };
const results = {};
for (const load of workloads) {
  const candidates = [ownDtoCall(load), validatorCall(load)];
  for (const candidate of candidates) await verify(candidate, load);
  const times = await timeCalls(
    candidates.map((candidate) => ({ ...candidate, inputs: load.inputs })),
    options,
  );
  results[load.id] = candidates.map(({ name }) => times.get(name));
}
console.log(JSON.stringify(results));

/** Declares unused DTO classes with two properties each. */
function declareOthers(count) {
  for (let index = 0; index < count; index += 1) {
    const { prototype } = class OtherDto {};
    Reflect.defineMetadata('design:type', String, prototype, 'name');
    Reflect.defineMetadata('design:type', Number, prototype, 'count');
    IsString()(prototype, 'name');
    MaxLength(50 + (index % 50))(prototype, 'name');
    IsInt()(prototype, 'count');
    Min(0)(prototype, 'count');
  }
}
