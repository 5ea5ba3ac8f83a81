/** This view. */
import { View } from '../view.js';
customElements.define('w-sessions', class extends View {});
