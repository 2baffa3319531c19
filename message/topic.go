package message

// ValidTopic says whether a name may be a topic: letters, digits and % | - _ only, so that it is a safe folder name as
// well. How long it may be is for the dialect to say.
func ValidTopic(topic string) bool {
	for i := range len(topic) {
		switch c := topic[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '%', c == '|', c == '-', c == '_':
		default:
			return false
		}
	}
	return topic != ""
}
