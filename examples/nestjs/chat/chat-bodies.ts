import { ArrayMinSize, IsArray, IsOptional, IsString, IsUUID, MaxLength } from 'class-validator';
import type { Answer } from 'toolwright';

/** What `POST /chat` takes. */
export class ChatBody {
  @IsString()
  @MaxLength(10_000)
  text!: string;

  /** Without it, a new conversation begins. */
  @IsOptional()
  @IsUUID()
  conversationId?: string;
}

/** What `POST /chat/:id/answers` takes. The loop itself checks each answer against what is pending. */
export class AnswersBody {
  @IsArray()
  @ArrayMinSize(1)
  answers!: readonly Answer[];
}
