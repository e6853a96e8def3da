/// What somebody did at a terminal.
public enum Input: Hashable, Sendable {
    /// Typed a character, or a part of one: accents typed on their own come on their own.
    case character(Unicode.Scalar)
    /// Pressed a key that writes nothing.
    case key(Key)
    /// Pressed a key together with Ctrl: a small letter, or one of `@ \ ] ^ _`.
    case control(Unicode.Scalar)
    /// Pressed a key together with Alt.
    case alternate(Unicode.Scalar)
    /// Did something with the mouse.
    case mouse(MouseInput)
    /// Pasted this, as it was, unless it was cut at ``KeyDecoder/longestPaste``.
    case paste(String)
    /// Has turned to this terminal, or away from it.
    case focus(Bool)

    /// A key that writes nothing.
    public enum Key: Hashable, Sendable {
        case enter, escape, tab, backTab, backspace, delete, insert
        case up, down, left, right, home, end, pageUp, pageDown
        /// F1 is 1.
        case function(Int)
    }
}
