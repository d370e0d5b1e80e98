export { type BullmqEngineOptions, bullmqEngine } from './bullmq-engine.js';
