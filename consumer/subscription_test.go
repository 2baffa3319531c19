package consumer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/message"
)

func TestSubscriptionExpressionsAreReadAsJavaDoes(t *testing.T) {
	for _, tt := range []struct {
		expression, kept string
		tags             []string
		codes            []int32
	}{
		{"", "*", nil, nil},
		{"*", "*", nil, nil},
		{"TagA", "TagA", []string{"TagA"}, []int32{2598919}},
		{"TagA || TagB", "TagA || TagB", []string{"TagA", "TagB"}, []int32{2598919, 2598920}}, // as captured
		{"TagA||TagB||TagA||", "TagA||TagB||TagA||", []string{"TagA", "TagB"}, []int32{2598919, 2598920}},
		{"|| TagA | x ||", "|| TagA | x ||", []string{"TagA | x"}, []int32{message.HashString("TagA | x")}},
	} {
		s, err := consumer.ParseSubscription("T", tt.expression)
		require.NoError(t, err)
		require.Equal(t, tt.kept, s.Expression)
		require.Equal(t, tt.tags, s.Tags)
		require.Equal(t, tt.codes, s.Codes)
	}
	for _, bad := range []string{" ", "||", " || ", "||||"} {
		_, err := consumer.ParseSubscription("T", bad)
		require.ErrorIs(t, err, consumer.ErrExpression, bad)
		require.ErrorContains(t, err, "topic T")
	}
}

// "Aa" and "BB" have one hash code, so the broker hands out both.
func TestTagsOfOneHashAreToldApart(t *testing.T) {
	s, err := consumer.ParseSubscription("T", "Aa")
	require.NoError(t, err)
	require.True(t, s.Takes("Aa"))
	require.False(t, s.Takes("BB"))
	require.False(t, s.Takes(""))
	all, err := consumer.ParseSubscription("T", "*")
	require.NoError(t, err)
	require.True(t, all.Takes("BB"))
	require.True(t, all.Takes(""))
}

func FuzzParseSubscription(f *testing.F) {
	f.Add("TagA || TagB")
	f.Add("|| ||")
	f.Fuzz(func(t *testing.T, expression string) {
		s, err := consumer.ParseSubscription("T", expression)
		if err != nil {
			return
		}
		require.Len(t, s.Codes, len(s.Tags))
		for _, tag := range s.Tags {
			require.True(t, s.Takes(tag))
		}
	})
}

func ExampleParseSubscription() {
	s, err := consumer.ParseSubscription("Orders", "paid || sent")
	fmt.Println(s.Tags, s.Takes("paid"), s.Takes("new"), err)
	_, err = consumer.ParseSubscription("Orders", "||")
	fmt.Println(err)
	// Output:
	// [paid sent] true false <nil>
	// subscription expression of topic Orders: no tag in "||"
}
