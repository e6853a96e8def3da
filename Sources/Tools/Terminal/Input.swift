/// An action of the user at a terminal.
public enum Input: Hashable, Sendable {
    /// Typed a character, or a part of one: an accent that is typed by itself comes by itself.
    case character(Unicode.Scalar)
    /// Pressed a key that writes nothing.
    case key(Key)
    /// Pressed a key together with Ctrl: a lowercase letter, or one of `@ \ ] ^ _`.
    case control(Unicode.Scalar)
    /// Pressed a key together with Alt.
    case alternate(Unicode.Scalar)
    /// Did something with the mouse.
    case mouse(MouseInput)
    /// Pasted this text, unchanged unless it was cut at ``KeyDecoder/longestPaste``.
    case paste(String)
    /// Turned to this terminal (true), or away from it (false).
    case focus(Bool)

    /// A key that writes nothing.
    public enum Key: Hashable, Sendable {
        case enter, escape, tab, backTab, backspace, delete, insert
        case up, down, left, right, home, end, pageUp, pageDown
        /// A function key; F1 is 1.
        case function(Int)
    }
}
