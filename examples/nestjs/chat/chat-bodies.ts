import { ArrayMinSize, IsArray, IsOptional, IsString, IsUUID, MaxLength } from 'class-validator';
import type { Answer } from 'toolwright';

/** The body of `POST /chat`. */
export class ChatBody {
  @IsString()
  @MaxLength(10_000)
  text!: string;

  /** Without it, a new conversation begins. */
  @IsOptional()
  @IsUUID()
  conversationId?: string;
}

/** The body of `POST /chat/:id/answers`. The loop checks each answer against the pending calls. */
export class AnswersBody {
  @IsArray()
  @ArrayMinSize(1)
  answers!: readonly Answer[];
}
