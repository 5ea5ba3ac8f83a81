/** This view. */
import { View } from '../view.js';
customElements.define('w-catalog', class extends View {});
